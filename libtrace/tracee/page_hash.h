/*
 * What digests are made of.
 *
 * The hash of a page is XXH3-64 of its bytes, but 0 for a page of zeros (and 1
 * where XXH3 gives 0).  The digest of a range of memory is the sum modulo 2^64
 * of the terms of its pages; a page whose hash is 0 has the term 0, so that an
 * absent page equals one of zeros, any other has XXH3-64 of its address and
 * hash.  A sum does not depend on the order and can follow a change of one
 * page without looking at the others.
 *
 * Two memories that differ have the same digest with a probability of 2^-64
 * as long as nobody looks for such a pair: XXH3 finds accidents, not attacks.
 */
#ifndef TR_TRACEE_PAGE_HASH_H
#define TR_TRACEE_PAGE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "libtrace/tracee/pagemap.h"

uint64_t tr_page_hash(const void *page);
uint64_t tr_page_term(uint64_t addr, uint64_t hash);

#endif
