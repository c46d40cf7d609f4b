// Used in place of installed libraries.
#include <lade/implementation.hpp>
#include <lade/media/implementation.hpp>
