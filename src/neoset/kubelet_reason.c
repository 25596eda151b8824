/* SPDX-License-Identifier: Apache-2.0 */
#include "neoset/kubelet_reason.h"

static const struct {
    const char *reason;
    bool is_pull;
} reasons[] = {
    {"ErrImagePull", true},
    {"ImagePullBackOff", true},
    {"ErrImageNeverPull", true},
    {"InvalidImageName", true},
    {"ImageInspectError", true},
    {"RegistryUnavailable", true},
    {"SignatureValidationFailed", true},
    {"CrashLoopBackOff", false},
    {"CreateContainerConfigError", false},
    {"CreateContainerError", false},
    {"RunContainerError", false},
    {"PostStartHookError", false},
    {"PreStartHookError", false},
    {"StartError", false},
    {"ContainerCannotRun", false},
};

static bool is_known(const char *reason, bool pulls_only)
{
    for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
        if (str_equal(reasons[i].reason, reason) && (reasons[i].is_pull || !pulls_only))
            return true;
    return false;
}

bool kubelet_reason_is_pull(const char *reason)
{
    return is_known(reason, true);
}

bool kubelet_reason_is_error(const char *reason)
{
    return is_known(reason, false);
}
