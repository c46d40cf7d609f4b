// lade itself, which this program takes along as headers: the only file that compiles it.

#include <lade/implementation.hpp>
#include <lade/media/implementation.hpp>
