#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tools/embed-sql: what is in the files is in the header, in order, and a gap in the numbers is refused.
set -u
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
passed=0
failed=0

check() { # WHAT CONDITION...
    local what=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        echo "FAIL $what"
        failed=$((failed + 1))
    fi
}

mkdir "$folder/migrations"
printf -- "-- one \"quoted\" and a \\\\ backslash\nSELECT '%%s\\\\n';\n" >"$folder/migrations/0001_first.sql"
printf 'SELECT 2;\n' >"$folder/migrations/0002_second.sql"
tools/embed-sql "$folder/migrations" >"$folder/sql.h"
cat >"$folder/print.c" <<'C'
#include <stdio.h>
#include "sql.h"
int main(void)
{
    for (int i = 0; i < JOURNAL_SCHEMA_VERSION; i++)
        fputs(journal_migrations[i], stdout);
    return 0;
}
C
check "the header compiles" "${CC:-cc}" -Wall -Werror -o "$folder/print" "$folder/print.c"
cat "$folder"/migrations/*.sql >"$folder/expected"
"$folder/print" >"$folder/found"
check "byte for byte, in order" cmp "$folder/expected" "$folder/found"

mv "$folder/migrations/0002_second.sql" "$folder/migrations/0003_second.sql"
refuses() {
    ! tools/embed-sql "$1" >/dev/null 2>"$folder/words"
}
check "a gap is refused" refuses "$folder/migrations"
check "and named" grep -q 'expected number 2' "$folder/words"
mkdir "$folder/empty"
check "no migrations is refused" refuses "$folder/empty"

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
