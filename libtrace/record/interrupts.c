/*
 * Signals to the recorder itself.
 *
 * Ctrl-C and Ctrl-\ reach the program by themselves, through the terminal's
 * process group; it decides what they mean.  SIGTERM and SIGHUP that somebody
 * sends to the recorder are passed on.  SIGTERM means that the recording must
 * end: where the program is deaf to it, SIGKILL follows, so that the trace is
 * complete before whoever asked loses patience.
 */
#include <signal.h>
#include <string.h>
#include <sys/time.h>

#include "libtrace/base/io.h"
#include "libtrace/record/recorder.h"

/* A program that does not handle SIGTERM is given this long. */
#define DEAF_NS UINT64_C(5000000000)

static volatile sig_atomic_t hangups, terms; /* to be passed on */

static void on_signal(int sig, siginfo_t *si, void *context)
{
	(void)context;
	/* What the kernel sends goes to the whole group. */
	if (sig == SIGALRM || si->si_code > 0)
		return;
	if (sig == SIGHUP)
		hangups = 1;
	else
		terms++;
}

static const int watched[] = {SIGALRM, SIGTERM, SIGHUP, SIGINT, SIGQUIT};
_Static_assert(sizeof watched / sizeof *watched == REC_WATCHED,
	       "one action is kept for each");

void rec_set_tick(uint64_t ns)
{
	const suseconds_t us = (suseconds_t)(ns / 1000);
	struct itimerval every = {{0, us}, {0, us}};

	setitimer(ITIMER_REAL, &every, NULL);
}

void rec_catch_signals(struct sigaction old[])
{
	hangups = terms = 0;
	for (size_t i = 0; i < REC_WATCHED; i++) {
		struct sigaction sa = {.sa_sigaction = on_signal,
				       .sa_flags = SA_SIGINFO};

		if (watched[i] == SIGINT || watched[i] == SIGQUIT)
			sa = (struct sigaction){.sa_handler = SIG_IGN};
		sigaction(watched[i], &sa, &old[i]);
	}
	rec_set_tick(REC_TICK_US * UINT64_C(1000));
}

void rec_restore_signals(const struct sigaction old[])
{
	struct itimerval never = {0};

	setitimer(ITIMER_REAL, &never, NULL);
	for (size_t i = 0; i < REC_WATCHED; i++)
		sigaction(watched[i], &old[i], NULL);
}

/* To the first process, or to all that are left when it has ended. */
static void send(const struct recorder *r, int sig, bool to_all)
{
	if (!r->root_done)
		kill(r->root, sig);
	for (const struct task *t = r->tasks; t; t = t->next)
		if (t->tid == t->pid && t->pid != r->root &&
		    (to_all || r->root_done))
			kill(t->pid, sig);
}

static bool any_handles(struct recorder *r, int sig)
{
	for (const struct task *t = r->tasks; t; t = t->next)
		if (rec_handles(t, sig))
			return true;
	return false;
}

void rec_pass_signals(struct recorder *r)
{
	int asked = terms;

	if (hangups)
		send(r, SIGHUP, false);
	hangups = 0;
	if (asked > r->terms_passed && r->terms_passed == 0) {
		send(r, SIGTERM, false);
		r->term_since = tr_now_ns();
		r->terms_passed = 1;
	} else if (asked > r->terms_passed ||
		   (asked && tr_now_ns() - r->term_since > DEAF_NS &&
		    !any_handles(r, SIGTERM))) {
		send(r, SIGKILL, true);
		r->terms_passed = asked;
	}
}
