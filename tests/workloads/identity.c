/* What a process knows and changes of itself: name, personality, limits,
 * groups, umask, directory, priority, and a parent's death. */
#include <sched.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include "check.h"

static void name(void)
{
	char is[16] = "";

	CHECK(prctl(PR_SET_NAME, "a longer name than fits") == 0);
	CHECK(prctl(PR_GET_NAME, is) == 0);
	CHECK(strcmp(is, "a longer name t") == 0);
	CHECK(prctl(PR_SET_DUMPABLE, 0) == 0 && prctl(PR_GET_DUMPABLE) == 0);
	CHECK(prctl(PR_SET_DUMPABLE, 1) == 0 && prctl(PR_GET_DUMPABLE) == 1);
}

static void parent_death(void)
{
	int fds[2], sig = 0, status;
	char c = 0;

	CHECK(pipe(fds) == 0);
	if (fork() == 0) {
		if (fork() == 0) {
			CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
			CHECK(prctl(PR_GET_PDEATHSIG, &sig) == 0);
			CHECK(sig == SIGKILL && write(fds[1], "x", 1) == 1);
			for (;;)
				pause();
		}
		CHECK(read(fds[0], &c, 1) == 1);
		_exit(0);
	}
	CHECK(wait(&status) > 0 && status == 0);
	close(fds[1]);
	CHECK(read(fds[0], &c, 1) == 0); /* the grandchild has gone too */
}

int main(void)
{
	struct utsname u;
	struct rlimit rl;
	cpu_set_t set;
	char dir[256];
	int p = personality(0xffffffff);

	name();
	parent_death();
	CHECK(p >= 0 && personality((unsigned)p) == p);
	CHECK(uname(&u) == 0 && strcmp(u.sysname, "Linux") == 0);
	umask(027);
	CHECK(umask(022) == 027);
	CHECK(chdir("/usr") == 0 && getcwd(dir, sizeof dir));
	CHECK(strcmp(dir, "/usr") == 0);
	CHECK(getrlimit(RLIMIT_NOFILE, &rl) == 0 && rl.rlim_cur > 0);
	errno = 0;
	CHECK(getpriority(PRIO_PROCESS, 0) >= -20 && errno == 0);
	CHECK(sched_getaffinity(0, sizeof set, &set) == 0);
	CHECK(CPU_COUNT(&set) > 0);
	CHECK(getsid(0) > 0 && getpgrp() > 0 && getppid() > 0);
	if (fork() == 0)
		_exit(setsid() != getpid() || getpgrp() != getpid());
	CHECK(wait(&p) > 0 && p == 0);
	puts("ok");
	return 0;
}
