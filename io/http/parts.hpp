// Objects in parts: how stores read what may be large.

#pragma once

#include <lade/buffer.hpp>
#include <lade/io/http/client.hpp>
#include <lade/io/store.hpp>
#include <lade/task.hpp>

#include <string>

namespace lade::io::http {

// A part of the object that `what`, a GET, asks for; see store::read_part.
task<object_part> get_part(client from, request what, byte_range part, std::string etag);

// The whole object. The first request asks for 8 MiB; of a longer object with a strong entity tag
// the rest is read in parts of that size, eight at a time, all of the same entity.
task<buffer> get_in_parts(client from, request what);

}  // namespace lade::io::http
