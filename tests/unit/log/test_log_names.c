/* Names of files and folders. */
#include "log_util.h"

static void file_names_read_and_write(void **state)
{
    static const struct {
        const char *name;
        int64_t base;
        enum log_file_kind kind;
        enum log_file_stage stage;
    } good[] = {
        {"00000000000000000000.log", 0, LOG_FILE_DATA, LOG_STAGE_LIVE},
        {"00000000000000001057.index", 1057, LOG_FILE_INDEX, LOG_STAGE_LIVE},
        {"00000000000000001057.timeindex", 1057, LOG_FILE_TIME, LOG_STAGE_LIVE},
        {"00000000000000001057.txnindex.deleted", 1057, LOG_FILE_TXN, LOG_STAGE_DELETED},
        {"00000000000000001057.snapshot", 1057, LOG_FILE_SNAPSHOT, LOG_STAGE_LIVE},
        {"00000000000000001057.log.cleaned", 1057, LOG_FILE_DATA, LOG_STAGE_CLEANED},
        {"00000000000000001057.index.swap", 1057, LOG_FILE_INDEX, LOG_STAGE_SWAP},
        {"09223372034707292159.log", INT64_MAX - INT32_MAX - 1, LOG_FILE_DATA, LOG_STAGE_LIVE},
    };
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct log_file_name f;
        char path[LOG_PATH_MAX];
        assert_true(log_file_name_parse(good[i].name, &f));
        assert_int_equal(f.base, good[i].base);
        assert_int_equal(f.kind, good[i].kind);
        assert_int_equal(f.stage, good[i].stage);
        log_file_path(path, "/d", f.base, f.kind, f.stage);
        assert_string_equal(path + 3, good[i].name);
    }
}

static void other_files_are_not_ours(void **state)
{
    static const char *const bad[] = {"",
                                      "x",
                                      ".log",
                                      "0.log",
                                      "00000000000000000000",
                                      "00000000000000000000.",
                                      "00000000000000000000.lo",
                                      "00000000000000000000.logs",
                                      "00000000000000000000.log.",
                                      "00000000000000000000.log.swap.swap",
                                      "0000000000000000000x.log",
                                      "000000000000000000001.log",
                                      "09223372034707292160.log",
                                      "09223372036854775808.log",
                                      "99999999999999999999.log",
                                      "leader-epoch-checkpoint",
                                      "partition.metadata"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct log_file_name f;
        assert_false(log_file_name_parse(bad[i], &f));
    }
}

static void folder_names_read(void **state)
{
    static const struct {
        const char *name;
        enum folder_kind kind;
        const char *topic;
        int32_t partition;
    } cases[] = {
        {"orders-0", FOLDER_LOG, "orders", 0},
        {"a-b.c_d-12", FOLDER_LOG, "a-b.c_d", 12},
        {"orders-2147483647", FOLDER_LOG, "orders", INT32_MAX},
        {"orders-3.00112233445566778899aabbccddeeff-delete", FOLDER_DELETE, "orders", 3},
        {"a.b-3.00112233445566778899aabbccddeeff-stray", FOLDER_STRAY, "a.b", 3},
        {"orders-3.00112233445566778899aabbccddeeff-future", FOLDER_FUTURE, "orders", 3},
        /* a topic may end like a suffix as long as a partition follows */
        {"x-delete-7", FOLDER_LOG, "x-delete", 7},
        {"orders", FOLDER_BAD, "", 0},
        {"-1", FOLDER_BAD, "", 0},
        {"orders-", FOLDER_BAD, "", 0},
        {"orders-x", FOLDER_BAD, "", 0},
        {"orders-2147483648", FOLDER_BAD, "", 0},
        {"orders-99999999999", FOLDER_BAD, "", 0},
        {"or ders-1", FOLDER_BAD, "", 0},
        {"..-1", FOLDER_BAD, "", 0},
        {"orders-delete", FOLDER_BAD, "", 0},
        {"orders-3.-delete", FOLDER_BAD, "", 0},
        {"orders.00112233445566778899aabbccddeeff-delete", FOLDER_BAD, "", 0},
        {"lost+found", FOLDER_BAD, "", 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct str topic = STR_LIT("");
        int32_t partition = 0;
        assert_int_equal(folder_name_parse(cases[i].name, &topic, &partition), cases[i].kind);
        if (cases[i].kind == FOLDER_BAD)
            continue;
        assert_true(str_eqz(topic, cases[i].topic));
        assert_int_equal(partition, cases[i].partition);
    }
}

/* C90: the longest topic, and a partition of five digits. */
static void delete_names_fit_into_255_bytes(void **state)
{
    char topic[250], name[FOLDER_NAME_MAX];
    for (int32_t partition = 0; partition <= 99999; partition += 33333)
        for (int n = 1; n <= 249; n++) {
            memset(topic, 't', sizeof(topic));
            struct str t = {topic, n};
            int32_t p;
            folder_name(name, t, partition);
            assert_true(strlen(name) <= 255);
            assert_int_equal(folder_name_parse(name, &t, &p), FOLDER_LOG);
            assert_int_equal(t.len, n);
            folder_name_delete(name, (struct str){topic, n}, partition, uuid_random());
            assert_true(strlen(name) <= 255);
            assert_int_equal(folder_name_parse(name, &t, &p), FOLDER_DELETE);
            assert_int_equal(p, partition);
            /* only as much is cut as must be */
            assert_true(t.len == n || strlen(name) == 255);
        }
}

UNIT_MAIN(unit_test(file_names_read_and_write), unit_test(other_files_are_not_ours),
          unit_test(folder_names_read), unit_test(delete_names_fit_into_255_bytes))
