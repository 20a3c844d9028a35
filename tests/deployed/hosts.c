/* AWS's hosts on the loopback interface: preloaded into a program (LD_PRELOAD), it leads names below `amazonaws.com` to 127.0.0.1,
 * and the port of https there to HOSTS_PORT. No other name is known, so that nothing is asked of a name server. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static const char SUFFIX[] = ".amazonaws.com";

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
  struct in_addr address;
  size_t length = node ? strlen(node) : 0, suffix = sizeof SUFFIX - 1;
  if (length > suffix && !strcmp(node + length - suffix, SUFFIX)) node = "127.0.0.1";
  else if (node && inet_pton(AF_INET, node, &address) != 1) return EAI_NONAME;
  return NEXT(getaddrinfo)(node, service, hints, found);
}

int connect(int socket, const struct sockaddr *address, socklen_t length) {
  struct sockaddr_in there;
  if (address->sa_family != AF_INET) return NEXT(connect)(socket, address, length);
  memcpy(&there, address, sizeof there);
  if (there.sin_addr.s_addr == htonl(INADDR_LOOPBACK) && there.sin_port == htons(443))
    there.sin_port = htons(atoi(getenv("HOSTS_PORT")));
  return NEXT(connect)(socket, (struct sockaddr *)&there, sizeof there);
}
