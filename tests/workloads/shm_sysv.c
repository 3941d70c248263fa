/* A System V segment: attached before a fork, by a stranger through its id,
 * and detached; the writes of each are seen by the others. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int id, status;
	char *mem, number[16];

	if (argc > 1) { /* the stranger */
		mem = shmat(atoi(argv[1]), NULL, 0);
		if (mem == (void *)-1 || strcmp(mem, "child") != 0)
			return 5;
		strcpy(mem, "stranger");
		return shmdt(mem) != 0;
	}
	id = shmget(IPC_PRIVATE, 10000, IPC_CREAT | 0600);
	mem = shmat(id, NULL, 0);
	if (id < 0 || mem == (void *)-1)
		return 1;
	strcpy(mem, "parent");
	if (fork() == 0) {
		if (strcmp(mem, "parent") != 0)
			_exit(2);
		strcpy(mem, "child");
		snprintf(number, sizeof number, "%d", id);
		execl(argv[0], argv[0], number, NULL);
		_exit(3);
	}
	if (wait(&status) < 0 || status != 0)
		return 4;
	printf("%s\n", mem);
	return strcmp(mem, "stranger") != 0 || shmdt(mem) != 0 ||
	       shmctl(id, IPC_RMID, NULL) != 0;
}
