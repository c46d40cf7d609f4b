// The core of lade, which programs take along as headers: the only file of each that compiles it.

#include <lade/implementation.hpp>
