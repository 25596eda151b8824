/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/neosetctl/resize.h"
#include "cmd/neosetctl/resize_converge.h"
#include "cmd/neosetctl/resize_job.h"

static const struct {
    const char *name;
    bool needs_server;
    int (*run)(const struct ctl_resize *run, struct error **err);
} commands[] = {
    {"resize declared", false, ctl_resize_declared}, {"resize job", false, ctl_resize_job},
    {"resize script", false, ctl_resize_script},     {"resize plan", true, ctl_resize_plan},
    {"resize converge", true, ctl_resize_converge},  {"resize recover", true, ctl_resize_recover},
};

static int find(const char *command)
{
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
        if (str_equal(commands[i].name, command))
            return (int)i;
    return -1;
}

bool ctl_resize_has(const char *command)
{
    return find(command) >= 0;
}

bool ctl_resize_needs_server(const char *command)
{
    PRE(ctl_resize_has(command));
    return commands[find(command)].needs_server;
}

int ctl_resize(const struct ctl_resize *run, struct error **err)
{
    int i = find(option_command_name(run->options));
    PRE(i >= 0);
    return commands[i].run(run, err);
}
