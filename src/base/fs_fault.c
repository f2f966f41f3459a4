/* fs_fault.c - the rules of the faulty file layer and its controls. The calls themselves are in
 * fs_fault_ops.c, what a crash forgets in fs_shadow.h. */
#include "base/fs_fault.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs_fault_private.h"

struct rule {
    struct list link;
    struct fs_fault_rule r;
    char *path; /* what r.path points at */
};

/* Does the rule act on this call? Moves its counters. */
static bool rule_acts(struct rule *rule, enum fs_call call, const char *path)
{
    struct fs_fault_rule *r = &rule->r;
    if (r->call != call || r->times == 0 || (r->path && fnmatch(r->path, path, 0)))
        return false;
    if (r->skip > 0) {
        r->skip--;
        return false;
    }
    if (r->times > 0)
        r->times--;
    return true;
}

static int judge(struct fs_fault *f, enum fs_call call, const char *path,
                 struct fs_fault_rule *found)
{
    f->counts[call]++;
    f->total++;
    if (f->off_at && f->total >= f->off_at && !f->off) {
        f->off = true;
        shadow_freeze(&f->shadow);
    }
    if (f->off)
        return -EIO;
    if (f->fail_at && f->total == f->fail_at)
        return -f->fail_error;
    list_each (it, &f->rules) {
        struct rule *rule = list_entry(it, struct rule, link);
        if (rule_acts(rule, call, path)) {
            *found = rule->r;
            break;
        }
    }
    return 0;
}

int fs_fault_gate(struct fs_fault *f, enum fs_call call, const char *path,
                  struct write_limit *limit)
{
    struct fs_fault_rule rule = {0};
    pthread_mutex_lock(&f->lock);
    int err = judge(f, call, path, &rule);
    pthread_mutex_unlock(&f->lock);
    if (rule.before)
        rule.before(rule.arg);
    if (limit && rule.write_bytes > 0) {
        *limit = (struct write_limit){rule.write_bytes, -rule.error};
        return 0;
    }
    return err ? err : -rule.error;
}

struct fs_fault *fs_fault_new(struct fs *under)
{
    struct fs_fault *f = calloc(1, sizeof(*f));
    if (!f)
        return NULL;
    f->fs.ops = &fs_fault_ops;
    f->under = under;
    pthread_mutex_init(&f->lock, NULL);
    list_init(&f->rules);
    shadow_init(&f->shadow, under);
    return f;
}

void fs_fault_free(struct fs_fault *f)
{
    if (!f)
        return;
    fs_fault_clear(f);
    shadow_free(&f->shadow);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

struct fs *fs_fault_fs(struct fs_fault *f)
{
    return &f->fs;
}

void fs_fault_add(struct fs_fault *f, struct fs_fault_rule rule)
{
    struct rule *copy = calloc(1, sizeof(*copy));
    if (!copy || (rule.path && !(copy->path = strdup(rule.path))))
        abort();
    copy->r = rule;
    copy->r.path = copy->path;
    pthread_mutex_lock(&f->lock);
    list_push_back(&f->rules, &copy->link);
    pthread_mutex_unlock(&f->lock);
}

void fs_fault_clear(struct fs_fault *f)
{
    struct list *link;
    pthread_mutex_lock(&f->lock);
    while ((link = list_pop(&f->rules))) {
        struct rule *rule = list_entry(link, struct rule, link);
        free(rule->path);
        free(rule);
    }
    f->fail_at = f->off_at = 0;
    pthread_mutex_unlock(&f->lock);
}

uint64_t fs_fault_count(struct fs_fault *f, enum fs_call call)
{
    pthread_mutex_lock(&f->lock);
    uint64_t n = f->counts[call];
    pthread_mutex_unlock(&f->lock);
    return n;
}

uint64_t fs_fault_total(struct fs_fault *f)
{
    pthread_mutex_lock(&f->lock);
    uint64_t n = f->total;
    pthread_mutex_unlock(&f->lock);
    return n;
}

void fs_fault_fail_at(struct fs_fault *f, uint64_t n, int error)
{
    pthread_mutex_lock(&f->lock);
    f->fail_at = n ? f->total + n : 0;
    f->fail_error = error;
    pthread_mutex_unlock(&f->lock);
}

void fs_fault_power_off_at(struct fs_fault *f, uint64_t n)
{
    pthread_mutex_lock(&f->lock);
    f->off_at = n ? f->total + n : 0;
    pthread_mutex_unlock(&f->lock);
}

int fs_fault_crash(struct fs_fault *f, const char *dir, enum fs_crash how, uint64_t seed)
{
    char clean[PATH_MAX];
    int err = shadow_path(dir, clean);
    if (err)
        return err;
    pthread_mutex_lock(&f->lock);
    err = shadow_crash(&f->shadow, clean, how, seed);
    if (!err) {
        f->off = false;
        f->off_at = 0;
    }
    pthread_mutex_unlock(&f->lock);
    return err;
}
