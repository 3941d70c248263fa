/* Loading libarchive. */
#include "libtrace/store/libarchive.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The name of its binary interface since version 3.1. */
#define SONAME "libarchive.so.13"

static struct tr_libarchive calls;
static char why[200]; /* not */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool find(void *lib, const char *name, void *call)
{
	void *p = dlsym(lib, name);

	memcpy(call, &p, sizeof p);
	return p;
}

static void load(void)
{
	void *lib = dlopen(SONAME, RTLD_LAZY | RTLD_LOCAL);
	bool all = lib;

#define X(name) all = all && find(lib, #name, &calls.name);
	TR_LIBARCHIVE_CALLS(X)
#undef X
	if (!all)
		snprintf(why, sizeof why, "%s", dlerror());
}

const struct tr_libarchive *tr_libarchive(struct tr_error *err)
{
	pthread_once(&once, load);
	if (!why[0])
		return &calls;
	tr_fail(err, TR_EUNSUPPORTED, "archives need libarchive: %s", why);
	return NULL;
}
