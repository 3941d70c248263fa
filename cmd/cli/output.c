/* Results on stdout, errors on stderr. */
#include "cmd/cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *tool_name = "trace";
static int trouble_status = 2;
static int output_errno; /* of the first failed write to stdout */

/*
 * A standard descriptor that the caller closed would be taken by the next
 * file opened, and results would go into that.  The placeholder fails every
 * use with EBADF and is gone in a program that is executed.
 */
static void hold_standard_descriptors(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		int flags = (fd == 0 ? O_WRONLY : O_RDONLY) | O_CLOEXEC;

		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", flags) < 0)
			return;
	}
}

/* Files and pipes take more at once than the page that stdio gives them. */
static void buffer_output(void)
{
	static char buffer[1 << 16];

	if (!isatty(STDOUT_FILENO))
		setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
}

void cli_set_tool(const char *name, int trouble)
{
	hold_standard_descriptors();
	buffer_output();
	tool_name = name;
	trouble_status = trouble;
}

void cli_flush(void)
{
	if (fflush(stdout) != 0 && output_errno == 0)
		output_errno = errno;
}

__attribute__((format(printf, 1, 0)))
static void verror(const char *fmt, va_list ap)
{
	char line[2048];
	int n;

	n = snprintf(line, sizeof line, "%s: ", tool_name);
	vsnprintf(line + n, sizeof line - (size_t)n, fmt, ap);
	for (char *s = line; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			*s = '?';
	cli_flush();
	fprintf(stderr, "%s\n", line);
}

void cli_error(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	verror(fmt, ap);
	va_end(ap);
}

int cli_trouble(const struct tr_error *err)
{
	cli_error("%s", err->text);
	return trouble_status;
}

int cli_fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	verror(fmt, ap);
	va_end(ap);
	return trouble_status;
}

bool cli_is_json(enum cli_format format)
{
	return format == CLI_JSON ||
	       (format == CLI_AUTO && !isatty(STDOUT_FILENO));
}

void cli_json_line(struct tr_json *j)
{
	errno = 0;
	if (tr_json_line(stdout, j) < 0 && output_errno == 0)
		output_errno = errno ? errno : EIO;
}

void cli_put_escaped(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c == '\n')
			fputs("\\n", stdout);
		else if (c == '\t')
			fputs("\\t", stdout);
		else if (c < 0x20 || c == 0x7f)
			printf("\\%03o", c);
		else
			putchar(c);
	}
}

bool cli_output_ok(void)
{
	if (!ferror(stdout))
		return output_errno == 0;
	/* What stdio could not write it keeps: trying again tells the reason. */
	if (output_errno == 0)
		output_errno = fflush(stdout) != 0 ? errno : EIO;
	return false;
}

int cli_finish(int status)
{
	cli_flush();
	if (cli_output_ok())
		return status;
	if (output_errno == EPIPE)
		return trouble_status;
	return cli_fail("standard output: %s", strerror(output_errno));
}

void cli_output_detach(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	fflush(NULL);
	for (int fd = 0; fd <= 2 && null >= 0; fd++)
		dup2(null, fd);
	if (null > 2)
		close(null);
}
