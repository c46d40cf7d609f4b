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

}  // namespace lade::io::http
