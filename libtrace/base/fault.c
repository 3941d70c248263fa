/* Named fault points, driven by the environment. */
#include "libtrace/base/fault.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct point {
	char name[32];
	int error; /* 0 means kill */
	long left; /* passages before it acts */
};

static struct point points[8];
static int npoints;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int error_number(const char *action)
{
	static const struct {
		const char *name;
		int value;
	} table[] = {
		{"enospc", ENOSPC}, {"eio", EIO},     {"eintr", EINTR},
		{"eacces", EACCES}, {"emfile", EMFILE}, {"eopnotsupp", EOPNOTSUPP},
		{"exdev", EXDEV},
	};

	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (strcmp(action, table[i].name) == 0)
			return table[i].value;
	return 0;
}

static void parse(void)
{
	const char *env = getenv("TRACE_FAULT");
	char copy[512], *save = NULL;

	if (!env)
		return;
	strncpy(copy, env, sizeof copy - 1);
	copy[sizeof copy - 1] = '\0';
	for (char *s = strtok_r(copy, ",", &save); s && npoints < 8;
	     s = strtok_r(NULL, ",", &save)) {
		struct point *p = &points[npoints];
		char *action = strchr(s, '='), *at;

		if (!action)
			continue;
		*action++ = '\0';
		at = strchr(action, '@');
		if (at)
			*at++ = '\0';
		strncpy(p->name, s, sizeof p->name - 1);
		p->error = error_number(action);
		p->left = at ? atol(at) - 1 : 0;
		npoints++;
	}
}

bool tr_fault(const char *name)
{
	pthread_once(&once, parse);
	for (int i = 0; i < npoints; i++) {
		if (strcmp(points[i].name, name) != 0)
			continue;
		if (__atomic_fetch_sub(&points[i].left, 1, __ATOMIC_RELAXED) > 0)
			return false;
		if (points[i].error == 0)
			raise(SIGKILL);
		errno = points[i].error;
		return true;
	}
	return false;
}
