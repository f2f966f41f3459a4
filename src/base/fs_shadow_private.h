/* fs_shadow_private.h - shared by the fs_shadow*.c files only. */
#ifndef BASE_FS_SHADOW_PRIVATE_H
#define BASE_FS_SHADOW_PRIVATE_H

#include "base/fs_shadow.h"

/* The way back over one write, truncation or growth. */
struct write_undo {
    struct list link;
    uint64_t seq;
    int64_t off;
    size_t len;  /* bytes written; 0 for a change of size */
    bool mapped; /* stored into a mapping */
    int64_t old_size;
    size_t old_len; /* of what stood at `off` before */
    uint8_t old[];
};

enum name_change { NAME_CREATED, NAME_UNLINKED, NAME_RENAMED };

/* The way back over one change of a name. */
struct name_undo {
    struct list link;
    uint64_t seq;
    enum name_change what;
    struct node *dir;  /* whose sync saves it */
    struct node *node; /* that was created, unlinked or renamed */
    /* NAME_RENAMED: where it came from, and what stood at the new name (NULL: nothing) */
    struct node *from_dir;
    char *from;
    struct node *replaced;
    struct file *saved; /* the content of what lost its name; NULL for a folder */
};

/* malloc or abort */
void *shadow_alloc(size_t n);
void shadow_attach(struct node *n);
void shadow_detach(struct node *n);
/* Makes it `name` in `parent`; takes `name`. */
void shadow_move(struct node *n, struct node *parent, char *name);
struct node *shadow_ref(struct node *n);
void shadow_name_free(struct name_undo *u);
void shadow_writes_free(struct node *n);

#endif
