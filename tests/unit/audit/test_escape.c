/* SPDX-License-Identifier: Apache-2.0
 *
 * Names and server texts are written by strangers: whatever bytes they hold, no format shows a terminal, a
 * spreadsheet or a parser anything but text. */
#include "audit/escape.h"
#include "audit/sheet.h"
#include "base/json.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { TEXT_MAX = 1 << 20 };

static void expect(const char *wanted, struct buf *got)
{
    if (strcmp(wanted, buf_text(got)) != 0)
        fail_msg("wanted %s, got %s", wanted, buf_text(got));
    buf_done(got);
}

static void a_cell_that_may_be_a_formula_gets_an_apostrophe(void **state)
{
    (void)state;
    static const struct {
        const char *text, *wanted;
    } table[] = {
        {"plain", "\"plain\""},
        {"", "\"\""},
        {"=1+1", "\"'=1+1\""},
        {"+5", "\"'+5\""},
        {"-5", "\"'-5\""},
        {"@SUM(A1)", "\"'@SUM(A1)\""},
        {"  =1+1", "\"'  =1+1\""},
        {"\xc2\xa0=1", "\"'\xc2\xa0=1\""},
        {"'quoted", "\"''quoted\""},
        {"\t=x", "\"'\\t=x\""},
        {"\r\n", "\"'\\r\\n\""},
        {"\n", "\"'\\n\""},
        {"\xef\xbc\x9d"
         "1",
         "\"'\xef\xbc\x9d"
         "1\""},
        {"\xef\xbc\x8b"
         "1",
         "\"'\xef\xbc\x8b"
         "1\""},
        {"\xef\xbc\x8d"
         "1",
         "\"'\xef\xbc\x8d"
         "1\""},
        {"\xef\xbc\xa0"
         "x",
         "\"'\xef\xbc\xa0"
         "x\""},
        {";=1+1", "\";=1+1\""},
        {"a=b", "\"a=b\""},
        {"say \"hi\"", "\"say \"\"hi\"\"\""},
        {"a,b", "\"a,b\""},
        {"back\\slash", "\"back\\slash\""},
        {"\x1b[31m", "\"\\x1b[31m\""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct buf out = BUF_INIT(TEXT_MAX);
        escape_csv(&out, table[i].text, false);
        expect(table[i].wanted, &out);
    }
}

static void raw_csv_has_no_apostrophe_and_still_no_control_characters(void **state)
{
    (void)state;
    struct buf out = BUF_INIT(TEXT_MAX);
    escape_csv(&out, "=1\x1b\t", true);
    expect("\"=1\\x1b\\t\"", &out);
}

static void what_a_terminal_must_not_see_is_spelt_out(void **state)
{
    (void)state;
    static const struct {
        const char *text, *plain, *json;
    } table[] = {
        {"a\nb\tc\rd", "a\\nb\\tc\\rd", "\"a\\nb\\tc\\rd\""},
        {"\x01\x1b\x7f", "\\x01\\x1b\\x7f", "\"\\u0001\\u001b\\u007f\""},
        {"\xc2\x85\xc2\x9b", "\\u0085\\u009b", "\"\\u0085\\u009b\""},
        {"\xe2\x80\xae"
         "txt",
         "\\u202etxt", "\"\\u202etxt\""},
        {"\xe2\x81\xa6\xe2\x81\xa9", "\\u2066\\u2069", "\"\\u2066\\u2069\""},
        {"\xe2\x80\xa8", "\\u2028", "\"\\u2028\""},
        {"\xff\xfe", "\\xff\\xfe", "\"\\ufffd\\ufffd\""},
        {"\xc0\xaf", "\\xc0\\xaf", "\"\\ufffd\\ufffd\""},
        {"\xed\xa0\x80", "\\xed\\xa0\\x80", "\"\\ufffd\\ufffd\\ufffd\""},
        {"\xe2\x82", "\\xe2\\x82", "\"\\ufffd\\ufffd\""},
        {"\xf3\xa0\x81\x81", "\\U000e0041", "\"\\udb40\\udc41\""},
        {"gr\xc3\xbc\xc3\x9f \xe4\xbd\xa0\xf0\x9f\x98\x80", "gr\xc3\xbc\xc3\x9f \xe4\xbd\xa0\xf0\x9f\x98\x80",
         "\"gr\xc3\xbc\xc3\x9f \xe4\xbd\xa0\xf0\x9f\x98\x80\""},
        {"\"\\", "\"\\", "\"\\\"\\\\\""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct buf out = BUF_INIT(TEXT_MAX);
        escape_plain(&out, table[i].text);
        expect(table[i].plain, &out);
        escape_json(&out, table[i].text);
        expect(table[i].json, &out);
    }
}

static void detail_is_part_of_the_document_when_it_is_json(void **state)
{
    (void)state;
    static const struct {
        const char *text, *wanted;
    } table[] = {
        {"{\"a\": [1,\n 2]}", "{\"a\": [1, 2]}"},
        {"{\"a\":\"\xe2\x80\xae\x7f\"}", "{\"a\":\"\\u202e\\u007f\"}"},
        {"not json \x1b", "\"not json \\u001b\""},
        {"{} trailing", "\"{} trailing\""},
        {"12345678901234567890", "12345678901234567890"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct buf out = BUF_INIT(TEXT_MAX);
        escape_json_text(&out, table[i].text);
        expect(table[i].wanted, &out);
    }
}

static void widths_are_those_of_a_terminal(void **state)
{
    (void)state;
    setlocale(LC_CTYPE, "C.UTF-8");
    assert_int_equal(text_width("abc"), 3);
    assert_int_equal(text_width("\xe4\xbd\xa0"), 2);
    assert_int_equal(text_width("e\xcc\x81"), 1);
    assert_int_equal(text_fit("abc", 2), 2);
    assert_int_equal(text_fit("\xe4\xbd\xa0\xe4\xbd\xa0", 3), 3);
}

/* --- random bytes
 * ------------------------------------------------------------------------------------------- */

static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return *seed >> 33;
}

/* A text of up to 60 bytes, none of them NUL, rich in what is dangerous. */
static void make_text(uint64_t *seed, char *text)
{
    static const char *const pieces[] = {"\x1b[2J", "\r\n", "\xc2\x9b", "\xe2\x80\xae",
                                         "=",       "\"",   "\xff",     "\xf0\x9f\x98",
                                         ",",       "\\",   "'",        "\xef\xbb\xbf"};
    size_t length = next_random(seed) % 40;
    size_t at = 0;
    while (at < length) {
        if (next_random(seed) % 3 == 0) {
            const char *piece = pieces[next_random(seed) % ARRAY_SIZE(pieces)];
            memcpy(text + at, piece, strlen(piece));
            at += strlen(piece);
        } else {
            text[at++] = (char)(1 + next_random(seed) % 255);
        }
    }
    text[at] = '\0';
}

/* Rows end with LF, in CSV with CR LF; nothing else below a space, no DEL, no C1, no bidi, and UTF-8
 * throughout. */
static void check_clean(const struct buf *text, enum sheet_format format)
{
    const unsigned char *at = (const unsigned char *)buf_text(text);
    assert_int_equal(strlen(buf_text(text)), text->length);
    for (size_t i = 0; i < text->length; i++) {
        if (at[i] == '\n')
            continue;
        if (at[i] == '\r' && format == SHEET_CSV && at[i + 1] == '\n')
            continue;
        if (at[i] < 0x20 || at[i] == 0x7f)
            fail_msg("format %d lets byte %02x through", (int)format, at[i]);
    }
    /* Escaping what was escaped changes nothing but the ends of rows: so nothing dangerous was left. */
    CLEANUP_BUF struct buf again = BUF_INIT(TEXT_MAX);
    escape_plain(&again, buf_text(text));
    size_t rows = 0;
    for (size_t i = 0; i < text->length; i++)
        rows += at[i] == '\n' || at[i] == '\r';
    assert_int_equal(again.length, text->length + rows);
}

enum { RANDOM_ROWS = 3000, RANDOM_COLUMNS = 4 };

static void whatever_bytes_a_text_holds_the_output_is_clean(void **state)
{
    (void)state;
    static const struct sheet_column columns[RANDOM_COLUMNS] = {
        {"id", "ID", SHEET_ID, IN_ALL, 1, NARROW_CUT},
        {"text", "TEXT", SHEET_TEXT, IN_ALL, 2, NARROW_CUT},
        {"detail", "DETAIL", SHEET_DETAIL, IN_ALL, 3, NARROW_CUT},
        {"last", "LAST", SHEET_TEXT, IN_ALL, 4, NARROW_CUT},
    };
    setlocale(LC_CTYPE, "C.UTF-8");
    for (int format = SHEET_TABLE; format <= SHEET_NAME; format++) {
        for (int is_terminal = 0; is_terminal <= 1; is_terminal++) {
            uint64_t seed = 7;
            struct out out;
            out_init(&out, -1);
            struct sheet_look look = {.format = (enum sheet_format)format, .columns = 30, .has_utf8 = true};
            look.is_terminal = is_terminal == 1;
            for (int i = 0; i < RANDOM_ROWS; i++) {
                char texts[RANDOM_COLUMNS][64];
                struct sheet_cell cells[RANDOM_COLUMNS];
                for (int j = 0; j < RANDOM_COLUMNS; j++) {
                    make_text(&seed, texts[j]);
                    cells[j] = cell_text(texts[j]);
                }
                struct sheet *sheet = sheet_begin(&out, &look, columns, RANDOM_COLUMNS);
                sheet_row(sheet, cells);
                sheet_end(sheet);
                check_clean(&out.text, (enum sheet_format)format);
                if (format == SHEET_JSON) {
                    CLEANUP_JSON cJSON *tree = NULL;
                    assert_int_equal(json_parse(buf_text(&out.text), out.text.length, &tree, NULL), 0);
                }
                buf_clear(&out.text);
            }
            out_done(&out);
        }
    }
}

/* --- CSV there and back
 * ------------------------------------------------------------------------------------- */

/* A strict reader of RFC 4180: cells of one record into cells, the number of them, or -1. */
static int read_record(const char **at, char cells[][256])
{
    int count = 0;
    for (;;) {
        size_t length = 0;
        if (**at == '"') {
            (*at)++;
            while (**at && !(**at == '"' && (*at)[1] != '"')) {
                if (**at == '"')
                    (*at)++;
                cells[count][length++] = *(*at)++;
            }
            if (*(*at)++ != '"')
                return -1;
        } else {
            while (**at && **at != ',' && **at != '\r')
                cells[count][length++] = *(*at)++;
        }
        cells[count++][length] = '\0';
        if (**at == ',') {
            (*at)++;
            continue;
        }
        if (strncmp(*at, "\r\n", 2) != 0)
            return -1;
        *at += 2;
        return count;
    }
}

static void csv_is_read_back_by_another_reader(void **state)
{
    (void)state;
    static const struct sheet_column columns[] = {
        {"a", "A", SHEET_TEXT, IN_DATA, 0, 0}, {"b", "B", SHEET_NUMBER, IN_DATA, 0, 0},
        {"c", "C", SHEET_TEXT, IN_DATA, 0, 0}, {"d", "D", SHEET_DURATION, IN_DATA, 0, 0},
        {"e", "E", SHEET_TIME, IN_DATA, 0, 0}, {"f", "F", SHEET_BOOL, IN_DATA, 0, 0},
    };
    struct out out;
    out_init(&out, -1);
    struct sheet_look look = {.format = SHEET_CSV};
    struct sheet *sheet = sheet_begin(&out, &look, columns, ARRAY_SIZE(columns));
    struct sheet_cell first[] = {cell_text("x,\"y\"\n"), cell_number(-7), cell_null(),
                                 cell_number(-1500000),  cell_number(0),  cell_number(1)};
    struct sheet_cell second[] = {cell_text(""),  cell_number(INT64_MIN), cell_text("\xc3\xa4"),
                                  cell_number(1), cell_number(-1),        cell_null()};
    sheet_row(sheet, first);
    sheet_row(sheet, second);
    sheet_end(sheet);
    const char *at = buf_text(&out.text);
    char cells[8][256];
    assert_int_equal(read_record(&at, cells), 6);
    assert_string_equal(cells[4], "e");
    assert_int_equal(read_record(&at, cells), 6);
    assert_string_equal(cells[0], "x,\"y\"\\n");
    assert_string_equal(cells[1], "-7");
    assert_string_equal(cells[2], "");
    assert_string_equal(cells[3], "-1.500000");
    assert_string_equal(cells[4], "1970-01-01T00:00:00.000000Z");
    assert_string_equal(cells[5], "true");
    assert_int_equal(read_record(&at, cells), 6);
    assert_string_equal(cells[1], "-9223372036854775808");
    assert_string_equal(cells[2], "\xc3\xa4");
    assert_string_equal(cells[4], "1969-12-31T23:59:59.999999Z");
    assert_string_equal(at, "");
    /* Null is nothing at all, an empty text is two quotes. */
    assert_non_null(strstr(buf_text(&out.text), "\r\n\"\",-9223372036854775808,"));
    assert_non_null(strstr(buf_text(&out.text), ",-7,,-1.500000,"));
    out_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cell_that_may_be_a_formula_gets_an_apostrophe),
        cmocka_unit_test(raw_csv_has_no_apostrophe_and_still_no_control_characters),
        cmocka_unit_test(what_a_terminal_must_not_see_is_spelt_out),
        cmocka_unit_test(detail_is_part_of_the_document_when_it_is_json),
        cmocka_unit_test(widths_are_those_of_a_terminal),
        cmocka_unit_test(whatever_bytes_a_text_holds_the_output_is_clean),
        cmocka_unit_test(csv_is_read_back_by_another_reader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
