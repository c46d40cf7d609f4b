// The module `media`, beside core.cpp.

#include <lade/media/implementation.hpp>
