package validation

import "net/netip"

// addresses is a range of addresses and the field that holds it. Its prefix is the zero value when the field held no range,
// which is then told already, and it takes part in no comparison.
type addresses struct {
	field  string
	prefix netip.Prefix
}

// parse reads a range and finds what is no IPv4 CIDR that starts where its range starts.
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

// parseOptional is parse for a field that may be left out.
func (p *problems) parseOptional(field string, text *string) addresses {
	if text == nil || *text == "" {
		return addresses{field: field}
	}

	return p.parse(field, *text)
}

// inside finds ranges that are not wholly in the outer one.
func (p *problems) inside(outer addresses, inner ...addresses) {
	for _, one := range inner {
		if !outer.prefix.IsValid() || !one.prefix.IsValid() {
			continue
		}

		if one.prefix.Bits() < outer.prefix.Bits() || !outer.prefix.Contains(one.prefix.Addr()) {
			p.add(one.field, "must be inside of %s, which is %s", outer.field, outer.prefix)
		}
	}
}

// disjoint finds ranges that share addresses.
func (p *problems) disjoint(ranges ...addresses) {
	for i, one := range ranges {
		for _, other := range ranges[:i] {
			if one.prefix.IsValid() && other.prefix.IsValid() && one.prefix.Overlaps(other.prefix) {
				p.add(one.field, "overlaps %s, which is %s", other.field, other.prefix)
			}
		}
	}
}
