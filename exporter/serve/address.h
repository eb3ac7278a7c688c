// Addresses to listen on.
#pragma once
#include <string>

namespace taper::serve {

/// Throws std::runtime_error with the reason if nothing can listen there: no such host, an address
/// of another machine, or a port that another program has. Port 0: any that is free.
void require_address(const std::string& host, int port);

}  // namespace taper::serve
