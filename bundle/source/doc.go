// Package source fetches the content of bundles: one file for each type of source. A Fetcher writes the content to a folder, and returns
// the source with all movable references pinned. Fetching the pinned source either gives the same content or fails.
//
// Every fetch is bounded in time and in size, and its content passes through package archive. The texts of errors contain neither credentials nor
// the responses of servers. To add a type, implement Fetcher and add it to New.
package source
