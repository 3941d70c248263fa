/* Error values: formatting and names. */
#include "libtrace/base/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int tr_fail(struct tr_error *err, enum tr_code code, const char *fmt, ...)
{
	va_list ap;

	err->code = code;
	err->sys_errno = 0;
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof err->text, fmt, ap);
	va_end(ap);
	return -1;
}

int tr_fail_errno(struct tr_error *err, const char *fmt, ...)
{
	int saved = errno;
	va_list ap;
	size_t n;

	err->code = TR_ESYS;
	err->sys_errno = saved;
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof err->text, fmt, ap);
	va_end(ap);
	n = strlen(err->text);
	snprintf(err->text + n, sizeof err->text - n, ": %s", strerror(saved));
	errno = saved;
	return -1;
}

int tr_error_prefix(struct tr_error *err, const char *fmt, ...)
{
	char old[sizeof err->text];
	va_list ap;
	size_t n;

	memcpy(old, err->text, sizeof old);
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof err->text, fmt, ap);
	va_end(ap);
	n = strlen(err->text);
	snprintf(err->text + n, sizeof err->text - n, ": %s", old);
	return -1;
}

const char *tr_code_name(enum tr_code code)
{
	static const char *const names[] = {
		[TR_OK] = "ok",
		[TR_ESYS] = "system",
		[TR_ENOTRACE] = "not-a-trace",
		[TR_EVERSION] = "unknown-version",
		[TR_EFEATURE] = "unknown-feature",
		[TR_ECORRUPT] = "corrupt",
		[TR_EINCOMPLETE] = "incomplete",
		[TR_EDIVERGED] = "diverged",
		[TR_EUNSUPPORTED] = "unsupported",
		[TR_EINVAL] = "invalid-argument",
		[TR_EEXIST] = "exists",
		[TR_EHOSTILE] = "hostile-archive",
		[TR_ENOEXEC] = "not-executable",
		[TR_ENOPROG] = "not-found",
	};

	return (size_t)code < sizeof names / sizeof *names ? names[code] : "?";
}
