/* unit.h - what every unit test includes: cmocka with its prerequisites, and a runner that can run
 * one test.
 *
 *   UNIT_MAIN(unit_test(does_this), unit_test(does_that))
 *
 * `prog` runs all, `prog name` only the tests whose name matches the cmocka pattern (with * and ?).
 */
#ifndef TESTS_UNIT_H
#define TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#undef unit_test /* an older meaning in cmocka 1.1.5 */
#define unit_test(f) cmocka_unit_test(f)

#define UNIT_MAIN(...)                                          \
    int main(int argc, char **argv)                             \
    {                                                           \
        const struct CMUnitTest unit_tests_[] = {__VA_ARGS__};  \
        if (argc > 1)                                           \
            cmocka_set_test_filter(argv[1]);                    \
        return cmocka_run_group_tests(unit_tests_, NULL, NULL); \
    }

#endif
