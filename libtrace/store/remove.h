/* Removing a trace directory. */
#ifndef TR_STORE_REMOVE_H
#define TR_STORE_REMOVE_H

/* Remove directory `name` of `at` and what is in it, `depth` levels of
 * directories deep; symbolic links are removed, not followed. */
void tr_remove_dir(int at, const char *name, int depth);

#endif
