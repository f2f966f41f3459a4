#include "log/offset_map.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { HASH_BYTES = 16, KEEP_BYTES = 1 << 20, SLOTS_MIN = 64 };

struct slot {
    uint64_t hash[2];
    int64_t offset;
};

struct offset_map {
    struct slot *slots;
    size_t mapped, slots_max, keys_max;
    size_t slots_n, limit; /* in use now: slots, and how many keys they may hold */
    size_t n;
    double load_factor;
    EVP_MD *md5;
    EVP_MD_CTX *ctx;
};

static int open_hash(struct offset_map *m)
{
    m->md5 = EVP_MD_fetch(NULL, "MD5", NULL);
    if (!m->md5)
        return -ENOTSUP;
    m->ctx = EVP_MD_CTX_new();
    return m->ctx && EVP_DigestInit_ex(m->ctx, m->md5, NULL) == 1 ? 0 : -ENOMEM;
}

int offset_map_new(size_t bytes, double load_factor, struct offset_map **out)
{
    *out = NULL;
    struct offset_map *m = calloc(1, sizeof(*m));
    if (!m)
        return -ENOMEM;
    m->slots_max = bytes / sizeof(struct slot);
    m->load_factor = load_factor < 0 ? 0 : load_factor > 1 ? 1 : load_factor;
    m->keys_max = (size_t)((double)m->slots_max * m->load_factor);
    if (m->keys_max == m->slots_max && m->keys_max)
        m->keys_max--; /* a search must find a free slot */
    int err = m->keys_max < 2 ? -EINVAL : open_hash(m);
    if (!err) {
        m->mapped = m->slots_max * sizeof(struct slot);
        void *p = mmap(NULL, m->mapped, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        m->slots = p == MAP_FAILED ? NULL : p;
        err = m->slots ? 0 : -ENOMEM;
    }
    if (err) {
        offset_map_free(m);
        return err;
    }
    m->slots_n = m->slots_max;
    m->limit = m->keys_max;
    *out = m;
    return 0;
}

void offset_map_free(struct offset_map *m)
{
    if (!m)
        return;
    if (m->slots)
        munmap(m->slots, m->mapped);
    EVP_MD_CTX_free(m->ctx);
    EVP_MD_free(m->md5);
    free(m);
}

void offset_map_reset(struct offset_map *m, int64_t expected)
{
    size_t used = m->slots_n * sizeof(struct slot);
    /* fresh pages are zeros; a few are sooner cleared than taken anew */
    if (m->n && (used <= KEEP_BYTES || madvise(m->slots, m->mapped, MADV_DONTNEED)))
        memset(m->slots, 0, used);
    m->n = 0;
    m->slots_n = m->slots_max;
    m->limit = m->keys_max;
    if (expected < 0 || (uint64_t)expected >= m->keys_max)
        return;
    /* half full at most: searches are short, and memory is no concern at this size */
    size_t slots = (size_t)expected * 2 < SLOTS_MIN ? SLOTS_MIN : (size_t)expected * 2;
    if (slots < m->slots_max) {
        m->slots_n = slots;
        m->limit = (size_t)expected > 0 ? (size_t)expected : 1;
    }
}

bool offset_map_full(const struct offset_map *m)
{
    return m->n >= m->limit;
}

size_t offset_map_count(const struct offset_map *m)
{
    return m->n;
}

size_t offset_map_capacity(const struct offset_map *m)
{
    return m->keys_max;
}

static void hash_of(struct offset_map *m, struct bytes key, uint64_t out[2])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int n = HASH_BYTES;
    /* Nothing here can fail once the context has been set up; if it does, going on would drop
     * records of other keys. */
    if (EVP_DigestInit_ex(m->ctx, NULL, NULL) != 1 ||
        EVP_DigestUpdate(m->ctx, key.p, key.len > 0 ? (size_t)key.len : 0) != 1 ||
        EVP_DigestFinal_ex(m->ctx, digest, &n) != 1 || n != HASH_BYTES)
        abort();
    memcpy(out, digest, HASH_BYTES);
    if (out[0] == 0 && out[1] == 0)
        out[1] = 1; /* zeros mean free */
}

/* The key's slot, or the free one where it belongs. */
static struct slot *find(struct offset_map *m, struct bytes key, uint64_t hash[2])
{
    hash_of(m, key, hash);
    size_t i = (size_t)(((unsigned __int128)hash[0] * m->slots_n) >> 64);
    for (;;) {
        struct slot *s = &m->slots[i];
        if ((s->hash[0] == hash[0] && s->hash[1] == hash[1]) || (s->hash[0] | s->hash[1]) == 0)
            return s;
        if (++i == m->slots_n)
            i = 0;
    }
}

void offset_map_put(struct offset_map *m, struct bytes key, int64_t offset)
{
    uint64_t hash[2];
    struct slot *s = find(m, key, hash);
    if ((s->hash[0] | s->hash[1]) == 0) {
        memcpy(s->hash, hash, sizeof(hash));
        m->n++;
    }
    s->offset = offset;
}

int64_t offset_map_get(struct offset_map *m, struct bytes key)
{
    uint64_t hash[2];
    const struct slot *s = find(m, key, hash);
    return (s->hash[0] | s->hash[1]) == 0 ? -1 : s->offset;
}
