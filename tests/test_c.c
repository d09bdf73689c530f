/*
 * C as its users meet it: every program of examples/, at a size that takes little time, does what it
 * is there to show; and the snippets of the manual print what the page says.
 */
#include "tests/children.h"

#define EXAMPLE(name, ...)                                                                         \
    run_program(built("examples/" name), fresh_folder("run"), NULL,                                \
                (const char *[]){__VA_ARGS__, NULL})

static void the_manual(void **state)
{
    (void)state;
    run_manual(built("tests/c/c"), "docs/c.md", 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_manual),
    };
    return cmocka_run_group_tests(tests, folder_begin, children_end);
}
