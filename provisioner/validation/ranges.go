package validation

import "net/netip"

// addresses is an address range and the name of its field. For an omitted or invalid range, prefix is the zero value.
// Comparisons skip such a range, so that a mistake is reported only once.
type addresses struct {
	field  string
	prefix netip.Prefix
}

// parse parses a range. It rejects a string that is not an IPv4 CIDR, and a CIDR that does not start with the first address of
// its range, because Gardener rejects both.
func (p *problems) parse(field, text string) addresses {
	prefix, err := netip.ParsePrefix(text)

	switch {
	case err != nil || !prefix.Addr().Is4():
		p.add(field, "must be an IPv4 range such as 10.250.0.0/16, not %q", text)

		return addresses{field: field}
	case prefix != prefix.Masked():
		p.add(field, "must start at the first address of its range: %s, not %s", prefix.Masked(), text)
	}

	return addresses{field: field, prefix: prefix.Masked()}
}

// parseOptional parses the range in an optional field. If the field is omitted, prefix is the zero value.
func (p *problems) parseOptional(field string, text *string) addresses {
	if !isSet(text) {
		return addresses{field: field}
	}

	return p.parse(field, *text)
}

// inside rejects inner ranges that are not within the outer one. It skips invalid ranges, because parse has reported them.
func (p *problems) inside(outer addresses, inner ...addresses) {
	for _, one := range inner {
		if !outer.prefix.IsValid() || !one.prefix.IsValid() {
			continue
		}

		p.addIf(one.prefix.Bits() < outer.prefix.Bits() || !outer.prefix.Contains(one.prefix.Addr()),
			one.field, "must be within %s, which is %s", outer.field, outer.prefix)
	}
}

// disjoint rejects ranges that overlap. It compares each pair once and skips invalid ranges.
func (p *problems) disjoint(ranges ...addresses) {
	for i, one := range ranges {
		for _, other := range ranges[:i] {
			p.addIf(one.prefix.IsValid() && other.prefix.IsValid() && one.prefix.Overlaps(other.prefix),
				one.field, "overlaps %s, which is %s", other.field, other.prefix)
		}
	}
}
