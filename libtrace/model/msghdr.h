/* The layout of messages on x86-64, see recvmsg(2) and recvmmsg(2). */
#ifndef TR_MODEL_MSGHDR_H
#define TR_MODEL_MSGHDR_H

/* struct msghdr: its members, and its size. */
#define MSG_NAME 0
#define MSG_NAMELEN 8
#define MSG_IOV 16
#define MSG_IOVLEN 24
#define MSG_CONTROL 32
#define MSG_CONTROLLEN 40
#define MSG_SIZE 56u
/* struct mmsghdr: a struct msghdr, and the bytes sent or received. */
#define MMSG_LEN 56u
#define MMSG_SIZE 64u

#endif
