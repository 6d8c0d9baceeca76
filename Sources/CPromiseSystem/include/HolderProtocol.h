#pragma once
// What the holder (Mount/Holder) and the daemon it keeps alive say to each other, and how the daemon finds what the holder has
// for it.
#include <stdint.h>

// Numbers of the daemon's descriptors when it starts.
enum {
  HOLDER_LINE = 10, // a SOCK_SEQPACKET socket to the holder; its break is the daemon's end
  HOLDER_RECORD = 11, // MountRecord.h, memfd_create(2)
  HOLDER_DEVICE = 12, // the FUSE device of the mount, for a successor only
};

// Four numbers with spaces between: the holder's process, how many daemons there were before, whether HOLDER_DEVICE is open,
// and the wait status of the last one, with HOLDER_SILENT when the holder has ended it.
#define HOLDER_ENVIRONMENT "PROMISEFS_HOLDER"
#define HOLDER_SILENT 0x10000

// How long a daemon may say nothing before it is replaced, in milliseconds; 0: for ever. As the variable PROMISEFS_PATIENCE has it,
// in seconds.
int cps_holder_patience(void);

// What the daemon says, each as one message of four bytes.
enum holder_message {
  HOLDER_KEEP = 1, // with the FUSE device as SCM_RIGHTS: a successor can go on with the mount
  HOLDER_SERVING = 2, // requests are being served
  HOLDER_ENDED = 3, // the mount has ended in order: the holder ends with the daemon's exit status
  HOLDER_RESTART = 4, // the daemon ends at once and wants a successor, which is no crash
  // With a descriptor that is readable when a thread of the daemon's has ended, which it does with the process alone
  // (PIDFD_THREAD of pidfd_open(2), Linux 6.9). Of the process itself that is not told while one thread cannot end.
  HOLDER_THREAD = 5,
  // It can serve requests. Six times within its patience.
  HOLDER_ALIVE = 6,
};

// Sends HOLDER_THREAD for the calling thread, where the kernel can.
void cps_holder_tell_thread(int line);

// Says it, with a descriptor unless that is negative. 0 or -1 with errno.
int cps_holder_tell(int line, enum holder_message message, int descriptor);

// One message of SOCK_SEQPACKET: a descriptor (SCM_RIGHTS) with `count` numbers. The descriptor, close-on-exec; or -1 with errno,
// which is EPROTO for a message of any other form.
int cps_receive_descriptor(int line, uint32_t *_Nonnull numbers, int count);
