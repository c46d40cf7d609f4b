// error: lade::batch_into: a writer with items_at_a_time must also take waiting_samples&
#include <lade/batch.hpp>

struct writer {
  static constexpr unsigned items_at_a_time = 2;
  lade::tensor_spec spec() const { return {lade::element_type::u8, {1}}; }
  void operator()(const lade::sample&, const lade::tensor&) const {}
  void operator()(lade::waiting_samples&) {}  // not const
};

auto batches = lade::batch_into(writer(), {.size = 2});
