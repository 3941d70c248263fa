/* Job control: a child stops itself and is continued by its parent, which
 * sees both. */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	int status, go[2];
	char byte;
	pid_t pid;

	if (pipe(go) < 0)
		return 1;
	pid = fork();
	if (pid == 0) {
		for (int i = 0; i < 3; i++) {
			raise(SIGSTOP);
			if (read(go[0], &byte, 1) != 1)
				_exit(1);
		}
		_exit(7);
	}
	for (int i = 0; i < 3; i++) {
		if (waitpid(pid, &status, WUNTRACED) != pid ||
		    !WIFSTOPPED(status))
			return 2;
		printf("stopped by %d\n", WSTOPSIG(status));
		fflush(stdout);
		kill(pid, SIGCONT);
		if (waitpid(pid, &status, WCONTINUED) != pid ||
		    !WIFCONTINUED(status))
			return 3;
		if (write(go[1], "g", 1) != 1)
			return 4;
	}
	if (waitpid(pid, &status, 0) != pid)
		return 5;
	printf("exit %d\n", WEXITSTATUS(status));
	return 0;
}
