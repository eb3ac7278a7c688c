#include "taper/exporter/serve/address.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <stdexcept>

namespace taper::serve {
namespace {

const char* reason_of(int error) {
  if (error == EADDRINUSE) return "another program has it";
  if (error == EADDRNOTAVAIL) return "it is no address of this machine";
  if (error == EACCES) return "ports below 1024 need more rights";
  return "the system refuses it";
}

/// 0, or the system's error.
int error_of(const addrinfo& address) {
  const int socket = ::socket(address.ai_family, address.ai_socktype, address.ai_protocol);
  if (socket < 0) return errno;
  const int yes = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const int failed = ::bind(socket, address.ai_addr, address.ai_addrlen);
  const int error = failed != 0 ? errno : 0;
  ::close(socket);
  return error;
}

}  // namespace

void require_address(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM, hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0)
    throw std::runtime_error("there is no host `" + host +
                             "`; 127.0.0.1 is this machine alone, 0.0.0.0 all its networks");
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, ::freeaddrinfo);
  int error = 0;
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    error = error_of(*address);
    if (error == 0) return;
  }
  throw std::runtime_error("the address " + host + ":" + std::to_string(port) +
                           " cannot be used: " + reason_of(error));
}

}  // namespace taper::serve
