#define FUSE_USE_VERSION 314
#include <fuse3/fuse_lowlevel.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "CFuseTransport.h"

// libfuse has one log function a process, which gets a va_list: Swift cannot be it.

static _Thread_local char last_message[512];
static void (*log_sink)(int priority, const char *text);

static void forward(enum fuse_log_level level, const char *format, va_list arguments) {
  char text[sizeof last_message];
  vsnprintf(text, sizeof text, format, arguments);
  size_t length = strlen(text);
  while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == ' ')) text[--length] = 0;
  if (length == 0) return;
  if (level <= FUSE_LOG_WARNING) memcpy(last_message, text, length + 1);
  if (log_sink) log_sink((int)level, text);
}

void ct_set_log_sink(void (*sink)(int priority, const char *text)) {
  log_sink = sink;
  fuse_set_log_func(forward);
}

const char *ct_last_message(void) { return last_message; }

void ct_clear_message(void) { last_message[0] = 0; }
