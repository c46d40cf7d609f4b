// The program of the README, as it stands there.

#include <lade/lade.hpp>
#include <lade/io/directory.hpp>
#include <lade/io/file.hpp>
#include <lade/media/image.hpp>

static void train(const lade::tensor&) {}

int main() {
  lade::runtime runtime;
}
