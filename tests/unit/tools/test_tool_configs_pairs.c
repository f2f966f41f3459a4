/* --add-config: keys, values, brackets. */
#include "tools/tool_configs.h"

#include <stdlib.h>

#include "unit.h"

/* The tool's own; not reached by what is legal. */
void configs_refuse(const char *fmt, ...)
{
    abort();
}

static void pairs_are_read(void **state)
{
    struct configs_pairs p = {NULL, 0};
    configs_pairs_parse("a=1, b.c_d-e = x y ,list=[p,q=r],empty=,nested=[[1,2],3],", &p);
    assert_int_equal(p.n, 5);
    assert_string_equal(configs_pairs_get(&p, "a"), "1");
    assert_string_equal(configs_pairs_get(&p, "b.c_d-e"), "x y");
    assert_string_equal(configs_pairs_get(&p, "list"), "p,q=r");
    assert_string_equal(configs_pairs_get(&p, "empty"), "");
    assert_string_equal(configs_pairs_get(&p, "nested"), "[1,2],3");
    assert_null(configs_pairs_get(&p, "f"));
    configs_pairs_parse("a=2", &p);
    assert_string_equal(configs_pairs_get(&p, "a"), "2");
    configs_pairs_drop(&p, "a");
    configs_pairs_drop(&p, "no-such");
    assert_null(configs_pairs_get(&p, "a"));
    configs_pairs_free(&p);
    configs_pairs_parse("", &p);
    configs_pairs_parse(NULL, &p);
    configs_pairs_load(NULL, &p);
    assert_int_equal(p.n, 0);
}

UNIT_MAIN(unit_test(pairs_are_read))
