/* Control characters from outside are shown, not sent to the terminal. */
#include "tools/tool_visible.h"

#include <stdlib.h>

#include "unit.h"

static void shows(const char *text, const char *as)
{
    char *got = tool_visible(text);
    assert_non_null(got);
    assert_string_equal(got, as);
    free(got);
}

static void control_characters_are_shown(void **state)
{
    shows("", "");
    shows("topic t: x\n\tat y", "topic t: x\n\tat y");
    shows("\x1b[2J\x1b]0;mine\x07", "\\x1b[2J\\x1b]0;mine\\x07");
    shows("a\rb\bc\x7f", "a\\x0db\\x08c\\x7f");
    shows("\xc2\x9b"
          "31m",
          "\\x9b31m");
}

static void other_text_is_as_it_came(void **state)
{
    shows("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xc2\xa0", "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xc2\xa0");
    shows("cut \xc2", "cut \xc2");
    shows("\\x1b", "\\x1b");
}

static void a_value_is_no_further_line(void **state)
{
    const char *plain = "gr\xc3\xbc\xc3\x9f", *odd = tool_shown("g\n\tx\x1b");
    assert_ptr_equal(tool_shown(plain), plain);
    assert_null(tool_shown(NULL));
    assert_string_equal(odd, "g\\x0a\\x09x\\x1b");
    free((void *)odd);
}

static void a_printed_message_cannot_steer(void **state)
{
    char *text;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    tool_print_visible(f, "%s: %s\n", "a", "\x1b[2J");
    fclose(f);
    assert_string_equal(text, "a: \\x1b[2J\n");
    free(text);
}

UNIT_MAIN(unit_test(control_characters_are_shown), unit_test(other_text_is_as_it_came),
          unit_test(a_value_is_no_further_line), unit_test(a_printed_message_cannot_steer))
