/* SPDX-License-Identifier: Apache-2.0
 *
 * What a person's neosetctl does in a simulated world, as a process of its own: his journal, the gateway over
 * it, and the product's drive of converge. It is killed and begun again like any other. */
#pragma once

#include "world.h"

/* What a command is to do; begun again, it wants the same. */
enum command_kind { COMMAND_NONE, COMMAND_CONVERGE, COMMAND_RECOVER, COMMAND_CONTINUE };
struct command_wish {
    enum command_kind kind;
    char sizes[TEXT_MAX];
    int flags; /* enum converge_flag */
};

struct command;

/* The program has its process and client; the command ends by itself. */
struct command *command_start(struct program *program, const struct command_wish *wish);
void command_free(struct command *command);
