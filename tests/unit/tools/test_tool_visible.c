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

UNIT_MAIN(unit_test(control_characters_are_shown), unit_test(other_text_is_as_it_came))
