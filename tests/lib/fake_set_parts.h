/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of the fake set, as they know each other. Only fake_set*.c includes this. */
#pragma once

#include "base/time_text.h"
#include "fake_set.h"
#include "kube/object.h"

/* --- fake_set.c --- */

int64_t fake_wall_us(const struct fake *fake);
/* A new resourceVersion. */
void fake_touch(struct fake *fake, cJSON *object);
/* By name, or NULL. */
cJSON *fake_find(const cJSON *list, const char *name);
/* The revision that the pod says it is of, or NULL. */
const char *fake_label(const cJSON *pod);

/* --- fake_set_check.c: each fails the test when an invariant does not hold --- */

int fake_ordinal_of(const char *pod);
bool fake_is_move(const struct step_request *step);
void fake_check_moves(struct fake *fake, const struct step_request *step, const cJSON *pod);
void fake_check_once(struct fake *fake, const struct step_request *step);
void fake_check_create(struct fake *fake, const struct step_request *step);

/* --- fake_set_write.c --- */

/* Checks, does and answers one step; takes it over. */
void fake_do_step(struct fake *fake, struct step_request *step);
