/* kafka-dump-log - prints the files of a log, and checks them against each other. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tool_dump.h"
#include "tools/tool_io.h"
#include "tools/tool_options.h"

struct args {
    const char *files, *key_decoder, *value_decoder;
    bool print_data, deep, skip_metadata, verify_only, sanity_only;
    bool offsets, transactions, metadata, remote;
    int64_t max_bytes, max_message;
};

#define ROW(field, flag, how, value, text, ...) \
    TOOL_ROW(struct args, field, flag, how, value, text, __VA_ARGS__)
#define I32 .min = 1, .max = INT32_MAX

static const struct tool_option options[] = {
    ROW(files, "files", TOOL_TEXT, "String: file1, file2, ...",
        "The comma-separated list of files: .log, .index, .timeindex, .snapshot, .txnindex, "
        ".checkpoint, and the text files of log dirs and partitions (checkpoints of offsets and "
        "epochs, partition.metadata, meta.properties).",
        .required = true),
    ROW(print_data, "print-data-log", TOOL_FLAG, NULL,
        "Print keys and payloads too; implies --deep-iteration."),
    ROW(deep, "deep-iteration", TOOL_FLAG, NULL, "Print the records, not only the batches."),
    ROW(skip_metadata, "skip-record-metadata", TOOL_FLAG, NULL,
        "With contents: leave offset, time, sizes, sequence and header keys of records out."),
    ROW(verify_only, "verify-index-only", TOOL_FLAG, NULL,
        "Check an index without printing its entries."),
    ROW(sanity_only, "index-sanity-check", TOOL_FLAG, NULL,
        "Only check what a broker checks of an index at its start."),
    ROW(max_message, "max-message-size", TOOL_INT, "Integer: size",
        "The size of the largest batch, looked for at the entries of an index.",
        .fallback = "5242880", I32),
    ROW(max_bytes, "max-bytes", TOOL_INT, "Integer: size",
        "Read only so many bytes of a log, from its start.", .fallback = "2147483647", I32),
    ROW(key_decoder, "key-decoder-class", TOOL_TEXT, "String",
        "What keys are: StringDecoder (the default), IntegerDecoder, LongDecoder, DefaultDecoder "
        "(hexadecimal). Implies --print-data-log."),
    ROW(value_decoder, "value-decoder-class", TOOL_TEXT, "String",
        "What values are. Implies --print-data-log."),
    ROW(offsets, "offsets-decoder", TOOL_FLAG, NULL,
        "Records are those of __consumer_offsets. Implies --print-data-log."),
    ROW(transactions, "transaction-log-decoder", TOOL_FLAG, NULL,
        "Records are those of __transaction_state. Implies --print-data-log."),
    ROW(metadata, "cluster-metadata-decoder", TOOL_FLAG, NULL,
        "Records are those of a KRaft metadata log: their types, versions and bytes. Implies "
        "--print-data-log."),
    ROW(remote, "remote-log-metadata-decoder", TOOL_FLAG, NULL,
        "Records are those of the remote log metadata topic; their bytes are printed in "
        "hexadecimal. Implies --print-data-log."),
};

static const struct tool tool = {
    .name = "kafka-dump-log",
    .about = "This tool helps to parse a log file and dump its contents to the console, useful for "
             "debugging a seemingly corrupt log segment.",
    .options = options,
    .options_n = sizeof options / sizeof *options,
};

static struct dump_decoder *make_decoder(const struct args *a)
{
    if (a->offsets)
        return dump_decoder_new(DUMP_OFFSETS, NULL, NULL);
    if (a->transactions)
        return dump_decoder_new(DUMP_TRANSACTIONS, NULL, NULL);
    if (a->metadata)
        return dump_decoder_new(DUMP_METADATA, NULL, NULL);
    if (a->remote)
        return dump_decoder_new(DUMP_PLAIN, "DefaultDecoder", "DefaultDecoder");
    return dump_decoder_new(DUMP_PLAIN, a->key_decoder, a->value_decoder);
}

static void dump_file(struct dump *d, const char *path)
{
    static const struct {
        const char *suffix;
        void (*dump)(struct dump *d, const char *path);
    } kinds[] = {
        {".log", dump_log},
        {".checkpoint", dump_log},
        {".index", dump_offset_index},
        {".timeindex", dump_time_index},
        {".snapshot", dump_producer_snapshot},
        {".txnindex", dump_txn_index},
    };
    const char *dot = strrchr(dump_base_name(path), '.');
    const struct dump_named *named = dump_named_files;
    printf("Dumping %s\n", path);
    for (; named->name; named++) {
        if (strcmp(named->name, dump_base_name(path)) == 0) {
            named->dump(d, path);
            return;
        }
    }
    for (size_t i = 0; dot && i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].suffix, dot) == 0) {
            kinds[i].dump(d, path);
            return;
        }
    }
    fflush(stdout);
    fprintf(stderr, "Ignoring unknown file %s\n", path);
}

static void dump_files(struct dump *d, char *list)
{
    char *rest = list;
    for (const char *path = strsep(&rest, ","); path && tool_output_ok(); path = strsep(&rest, ","))
        if (*path)
            dump_file(d, path);
}

int main(int argc, char **argv)
{
    static struct args a;
    tool_start();
    tool_parse(&tool, argc, argv, &a);
    bool contents = a.print_data || a.key_decoder || a.value_decoder || a.offsets ||
                    a.transactions || a.metadata || a.remote;
    struct dump d = {.deep = a.deep || contents,
                     .contents = contents,
                     .skip_metadata = a.skip_metadata,
                     .verify_only = a.verify_only,
                     .sanity_only = a.sanity_only,
                     .max_bytes = a.max_bytes,
                     .max_message = a.max_message,
                     .decoder = make_decoder(&a),
                     .complaints = stderr};
    char *list = strdup(a.files);
    if (!list)
        tool_die("out of memory");
    dump_files(&d, list);
    free(list);
    int status = tool_finish(d.failed ? 1 : 0);
    if (d.notes.failed)
        tool_die("out of memory");
    if (d.notes.len)
        fwrite(d.notes.p, 1, d.notes.len, stderr);
    buf_free(&d.notes);
    dump_decoder_free(d.decoder);
    return status;
}
