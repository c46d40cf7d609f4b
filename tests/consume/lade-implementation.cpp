// Used in place of an installed library.
#include <lade/implementation.hpp>
