/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/script.h"
#include "resize_script.h"

const char *volume_script_text(void)
{
    return resize_script;
}
