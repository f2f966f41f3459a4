/* std_fds.h - descriptors 0, 1 and 2 stay what they mean. */
#ifndef BASE_STD_FDS_H
#define BASE_STD_FDS_H

/* First thing in main: a descriptor of these three that the starter closed (`2>&-`) is taken, so
 * that no file or socket opened later gets its number, and log lines or output with it. Reading
 * from it or writing to it fails with EBADF, as on a closed one. */
void std_fds_fill(void);

#endif
