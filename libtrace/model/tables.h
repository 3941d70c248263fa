/*
 * The tables that generate.awk makes from formats/syscalls.tbl, ioctls.tbl
 * and flags.tbl.  Internal to libtrace/model and its test.
 */
#ifndef TR_MODEL_TABLES_H
#define TR_MODEL_TABLES_H

#include "libtrace/model/syscalls.h"

struct tr_ioctl {
	const char *name;
	uint32_t cmd;
	enum tr_dir dir; /* 0: the argument is no address */
	uint32_t size;
	bool even_on_error;
	bool code; /* irregular.c computes the effects */
};

struct tr_struct_size {
	const char *name;
	size_t size;
};

/* A number of a table next to the one of the system's headers. */
struct tr_model_check {
	const char *name;
	uint32_t header, table;
};

extern const struct tr_flag_set tr_flag_sets[];
extern const size_t tr_flag_sets_n;
extern const struct tr_ioctl tr_ioctl_table[];
extern const size_t tr_ioctl_table_n;
extern const struct tr_struct_size tr_struct_sizes[];
extern const size_t tr_struct_sizes_n;
extern const struct tr_sys tr_sys_table[]; /* by number; holes have no name */
extern const size_t tr_sys_table_n;

/* The set of that name, or NULL. */
const struct tr_flag_set *tr_flag_set_find(const char *name);
/* The name of the member that equals v (32 bits), or NULL. */
const char *tr_flag_name(const struct tr_flag_set *set, uint64_t v);

#endif
