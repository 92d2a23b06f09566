//! Roles of callers.

use std::fmt;

/// Role of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Agent: calls Route and Gate. Sees only the part of the catalog that its own agent sees.
    Agent,
    /// Catalog writer: reads and changes its tenant's catalog and policy, and reads its usage and memory.
    CatalogWriter,
    /// Delegate: says of each call for which principal it is, as a gateway does. If the credential belongs to no tenant, this
    /// holds for any tenant that a call names.
    Delegate,
    /// Admin: may do everything. If the credential belongs to no tenant, this holds for any tenant that a call names.
    Admin,
}

/// Set of roles.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Roles(u8);

impl Role {
    /// All roles, least powerful first.
    pub const ALL: [Self; 4] = [Self::Agent, Self::CatalogWriter, Self::Delegate, Self::Admin];

    /// Names of the roles, in the same order.
    pub const NAMES: [&'static str; 4] = ["agent", "catalog-writer", "delegate", "admin"];

    /// Returns the name of the role, as in credentials.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Returns the role of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }
}

impl Roles {
    /// Returns the set of these roles and no others.
    #[must_use]
    pub const fn of(roles: &[Role]) -> Self {
        let mut set = 0;
        let mut at = 0;
        while at < roles.len() {
            set |= 1 << roles[at] as u8;
            at += 1;
        }
        Self(set)
    }

    /// Returns the set of the roles with these names. Unknown names are ignored.
    #[must_use]
    pub fn named<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self::of(&names.into_iter().filter_map(Role::named).collect::<Vec<_>>())
    }

    /// Returns true if the set contains the role.
    #[must_use]
    pub const fn has(self, role: Role) -> bool {
        self.0 & (1 << role as u8) != 0
    }

    /// Returns true if a credential with these roles may be of no tenant, and so of any that a call names.
    #[must_use]
    pub const fn may_be_of_any_tenant(self) -> bool {
        self.has(Role::Admin) || self.has(Role::Delegate)
    }

    /// Returns the set with the role added.
    #[must_use]
    pub const fn and(self, role: Role) -> Self {
        Self(self.0 | 1 << role as u8)
    }

    /// Returns true if the sets have a role in common.
    #[must_use]
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns true if the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the names of the roles, least powerful first.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Role::ALL.into_iter().filter(move |role| self.has(*role)).map(Role::name)
    }
}

impl fmt::Display for Roles {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.names().collect::<Vec<_>>().join(", "))
    }
}

impl fmt::Debug for Roles {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "[{self}]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_named_and_told_apart() {
        for role in Role::ALL {
            assert_eq!(Role::named(role.name()), Some(role));
            let alone = Roles::of(&[role]);
            for other in Role::ALL {
                assert_eq!(alone.has(other), role == other);
                assert_eq!(alone.meets(Roles::of(&[other])), role == other);
            }
        }
        let some = Roles::named(["admin", "root", "agent", "Agent"]);
        assert_eq!(some.to_string(), "agent, admin");
        assert!(Roles::named(["root", ""]).is_empty());
    }
}
