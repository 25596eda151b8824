/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/look.h"

#include <langinfo.h>
#include <locale.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

/* The terminal takes escape sequences. */
static bool knows_codes(void)
{
    const char *terminal = getenv("TERM");
    return terminal && *terminal && !str_equal(terminal, "dumb");
}

static bool wants_color(const char *when, bool is_terminal)
{
    if (!str_equal(when, "auto"))
        return str_equal(when, "always");
    const char *no_color = getenv("NO_COLOR");
    return is_terminal && !(no_color && *no_color) && knows_codes();
}

static size_t terminal_columns(bool is_terminal)
{
    struct winsize size = {0};
    if (is_terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return LOOK_COLUMNS_DEFAULT;
}

/* Characters are UTF-8 for us in any locale; whether the user's terminal shows them is the locale's word. */
static bool terminal_has_utf8(void)
{
    setlocale(LC_CTYPE, "");
    bool has_utf8 = str_equal(nl_langinfo(CODESET), "UTF-8");
    setlocale(LC_CTYPE, "C.UTF-8");
    return has_utf8;
}

static int64_t local_offset_s(int64_t at_s)
{
    time_t at = (time_t)at_s;
    struct tm local;
    return localtime_r(&at, &local) ? local.tm_gmtoff : 0;
}

void look_make(const struct look_wish *wish, struct sheet_look *ret)
{
    PRE(wish->columns >= 0);
    bool is_terminal = isatty(STDOUT_FILENO);
    *ret = (struct sheet_look){
        .format = sheet_format_of_text(wish->format),
        .is_terminal = is_terminal,
        .has_color = wants_color(wish->color, is_terminal),
        .has_utf8 = terminal_has_utf8(),
        .columns = wish->columns > 0 ? (size_t)wish->columns : terminal_columns(is_terminal),
        .csv_raw = wish->is_csv_raw,
        .local_offset_s = wish->is_local ? local_offset_s : NULL,
    };
}

void look_refresh(struct sheet_look *look)
{
    if (look->is_terminal)
        look->columns = terminal_columns(true);
}

bool look_redraws(const struct sheet_look *look)
{
    return look->is_terminal && knows_codes();
}

size_t look_rows(void)
{
    struct winsize size = {0};
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_row : 0;
}
