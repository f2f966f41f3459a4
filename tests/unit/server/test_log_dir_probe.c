/* Whether a broker could use a folder: one that is there, one that is not, one that cannot be. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/logline.h"
#include "server/log_dir_probe.h"

static char why[512];
static char lines[2048]; /* what was logged */

static int probe(const char *path)
{
    *why = 0;
    return log_dir_probe(path, why, sizeof(why));
}

static void keep_line(enum logline_level level, const char *line, void *arg)
{
    size_t at = strlen(lines);
    snprintf(lines + at, sizeof(lines) - at, "%s\n", line);
}

static int probe_all(const char *settings, char *err, size_t err_n)
{
    struct props *p = props_new();
    struct config *c;
    assert_int_equal(props_parse(p, settings, strlen(settings), NULL), 0);
    logline_set_sink(keep_line, NULL);
    assert_int_equal(config_load(p, &c, err, err_n), 0);
    *lines = *err = 0;
    int rc = log_dirs_probe(c, err, err_n);
    logline_set_sink(NULL, NULL);
    config_free(c);
    return rc;
}

static void a_folder_that_could_be_made_is_good_and_is_not_made(void **state)
{
    char dir[] = "/tmp/kafkad-test-XXXXXX", path[200];
    struct stat st;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(probe(dir), 0);
    snprintf(path, sizeof(path), "%s/a/b//c/", dir);
    assert_int_equal(probe(path), 0);
    snprintf(path, sizeof(path), "%s/a", dir);
    assert_int_equal(stat(path, &st), -1);
    assert_int_equal(rmdir(dir), 0);
    assert_int_equal(probe("/"), access("/", W_OK) == 0 ? 0 : -errno);
}

static void what_is_no_folder_is_refused_with_its_name(void **state)
{
    char file[] = "/tmp/kafkad-test-XXXXXX", path[200];
    int fd = mkstemp(file);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(probe(file), -ENOTDIR);
    assert_string_equal(why, "cannot be used: Not a directory");
    snprintf(path, sizeof(path), "%s/logs", file);
    assert_int_equal(probe(path), -ENOTDIR);
    unlink(file);
    assert_int_equal(probe("/proc/x/y"), -EROFS);
    assert_non_null(strstr(why, "cannot be made in /proc: "));
    assert_int_equal(probe("/proc"), -EROFS);
}

static void the_start_is_stopped_by_the_folder_it_needs(void **state)
{
    char err[1024];
    assert_int_equal(probe_all("log.dirs=/proc/x,/proc/y\nzookeeper.connect=h:1", err, sizeof(err)),
                     -EROFS);
    assert_non_null(strstr(err, "log.dirs: the folder /proc/x cannot be made in /proc"));
    assert_non_null(strstr(err, "\nlog.dirs: the folder /proc/y"));
    /* another one is left */
    assert_int_equal(probe_all("log.dirs=/proc/x,/tmp\nzookeeper.connect=h:1", err, sizeof(err)),
                     0);
    assert_string_equal(err, "");
    assert_non_null(strstr(lines, "WARN"));
    assert_non_null(strstr(lines, "/proc/x"));
    /* the embedded store is in the first */
    assert_int_equal(probe_all("log.dirs=/proc/x,/tmp", err, sizeof(err)), -EROFS);
    assert_int_equal(probe_all("log.dirs=/tmp,/proc/x", err, sizeof(err)), 0);
    assert_int_equal(probe_all("log.dirs=/tmp", err, sizeof(err)), 0);
    assert_string_equal(lines, "");
}

UNIT_MAIN(unit_test(a_folder_that_could_be_made_is_good_and_is_not_made),
          unit_test(what_is_no_folder_is_refused_with_its_name),
          unit_test(the_start_is_stopped_by_the_folder_it_needs))
