/*
 * libarchive, loaded when the first archive is met.  Linked, it would be most of
 * the time that a tool takes to start: with it come libxml2, ICU and the C++
 * library, for formats that no trace is in.
 */
#ifndef TR_STORE_LIBARCHIVE_H
#define TR_STORE_LIBARCHIVE_H

#include <archive.h>
#include <archive_entry.h>

#include "libtrace/base/error.h"

#define TR_LIBARCHIVE_CALLS(X)                                                 \
	X(archive_entry_clear) X(archive_entry_filetype)                       \
	X(archive_entry_free) X(archive_entry_hardlink) X(archive_entry_new)   \
	X(archive_entry_pathname) X(archive_entry_pathname_utf8)               \
	X(archive_entry_set_filetype) X(archive_entry_set_gid)                 \
	X(archive_entry_set_hardlink) X(archive_entry_set_mtime)               \
	X(archive_entry_set_pathname) X(archive_entry_set_perm)                \
	X(archive_entry_set_size) X(archive_entry_set_uid)                     \
	X(archive_entry_size) X(archive_entry_sparse_add_entry)                \
	X(archive_entry_sparse_count) X(archive_error_string)                  \
	X(archive_filter_bytes) X(archive_filter_code)                         \
	X(archive_read_data_block) X(archive_read_free)                        \
	X(archive_read_header_position) X(archive_read_new)                    \
	X(archive_read_next_header) X(archive_read_open2)                      \
	X(archive_read_support_filter_gzip)                                    \
	X(archive_read_support_filter_none)                                    \
	X(archive_read_support_filter_xz)                                      \
	X(archive_read_support_filter_zstd)                                    \
	X(archive_read_support_format_raw)                                     \
	X(archive_read_support_format_tar) X(archive_set_error)                \
	X(archive_write_add_filter_gzip) X(archive_write_add_filter_xz)        \
	X(archive_write_add_filter_zstd) X(archive_write_close)                \
	X(archive_write_data) X(archive_write_fail) X(archive_write_free)      \
	X(archive_write_header) X(archive_write_new) X(archive_write_open)     \
	X(archive_write_set_bytes_in_last_block)                               \
	X(archive_write_set_bytes_per_block)                                   \
	X(archive_write_set_format_pax_restricted)                             \
	X(archive_write_set_format_raw) X(archive_write_set_options)

/* Its functions, by their names. */
struct tr_libarchive {
#define X(name) __typeof__(name) *name;
	TR_LIBARCHIVE_CALLS(X)
#undef X
};

/* NULL where there is none. */
const struct tr_libarchive *tr_libarchive(struct tr_error *err) TR_MUST_CHECK;

#endif
