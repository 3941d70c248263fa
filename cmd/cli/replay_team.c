/* Replaying a trace with several processes. */
#include "cmd/cli/replay_team.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_MEMBERS 64u

/* What the first member tells the others' parent. */
struct told {
	struct cli_replay_progress progress;
	char cpu_missing[512];
};

void cli_replay_note(struct cli_replay_progress *p, const struct tr_event *ev)
{
	if (!ev)
		return;
	p->last = ev->number;
	if (ev->task > p->tasks)
		p->tasks = ev->task;
	if (ev->type == TR_EV_EXIT && ev->task == 1) {
		p->have_status = true;
		p->status = (int)tr_event_get(ev, TR_F_STATUS);
	}
}

/* Replay to the end; was all of it identical? */
static bool replay(struct tr_replay *r, struct told *told)
{
	const char *missing = tr_replay_cpu_missing(r);
	struct tr_replay_step step;
	struct tr_error err;

	snprintf(told->cpu_missing, sizeof told->cpu_missing, "%s",
		 missing ? missing : "");
	do {
		if (tr_replay_step(r, &step, &err) < 0)
			return false;
		cli_replay_note(&told->progress, step.event);
	} while (step.what == TR_REPLAY_EVENT || step.what == TR_REPLAY_OUTPUT);
	return step.what == TR_REPLAY_END;
}

/* One process of the team, with a reader of its own: descriptors that
 * processes share have one file position. */
static bool work(const char *path, struct tr_replay_team *team,
		 unsigned member, struct told *told)
{
	struct tr_error err;
	struct tr_reader *reader = tr_reader_open(path, &err);
	struct tr_replay *r = reader ? tr_replay_new(reader, &err) : NULL;
	bool identical = false;

	if (r) {
		tr_replay_join(r, team, member);
		identical = replay(r, told);
		tr_replay_free(r);
	}
	if (reader)
		tr_reader_close(reader);
	return identical;
}

/* A member holds the pipe open as long as it works, and says so in it when it
 * is in vain. */
static pid_t start(const char *path, struct tr_replay_team *team,
		   unsigned member, struct told *told, const int ends[2])
{
	pid_t parent = getpid(), pid = fork();
	struct told own = {0};
	bool identical;

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	close(ends[0]);
	identical = work(path, team, member, member == 0 ? told : &own);
	if (!identical && write(ends[1], "", 1) < 0)
		_exit(2);
	_exit(identical ? 0 : 1);
}

static bool wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* All members have to succeed: the first failure ends the others. */
static bool run(const char *path, struct tr_replay_team *team, unsigned n,
		struct told *told)
{
	pid_t pid[MAX_MEMBERS];
	bool identical = true;
	unsigned started = 0;
	int ends[2];
	ssize_t got = -1;
	char c;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return false;
	while (started < n && (pid[started] = start(path, team, started, told,
						    ends)) > 0)
		started++;
	close(ends[1]);
	while (started == n && (got = read(ends[0], &c, 1)) < 0 &&
	       errno == EINTR)
		;
	if (started < n || got != 0)
		for (unsigned i = 0; i < started; i++)
			kill(pid[i], SIGKILL);
	for (unsigned i = 0; i < started; i++)
		identical &= wait_for(pid[i]);
	close(ends[0]);
	return identical && started == n;
}

bool cli_replay_team(const struct tr_reader *reader, const char *path,
		     uint64_t jobs, struct cli_replay_progress *p,
		     char *cpu_missing, size_t room)
{
	uint32_t spaces = tr_reader_stream_count(reader);
	unsigned n = jobs < MAX_MEMBERS ? (unsigned)jobs : MAX_MEMBERS;
	struct tr_replay_team *team;
	struct tr_error ignored;
	struct told *told;
	bool identical;

	/* The first stream is the catalogue. */
	if (spaces < 3 || !tr_reader_complete(reader))
		return false;
	if (n > spaces - 1)
		n = spaces - 1;
	told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (told == MAP_FAILED)
		return false;
	team = tr_replay_team_new(reader, &ignored);
	identical = n > 1 && team && run(path, team, n, told);
	*p = told->progress;
	p->processes = n;
	snprintf(cpu_missing, room, "%s", told->cpu_missing);
	tr_replay_team_free(team);
	munmap(told, sizeof *told);
	return identical;
}
