//! What a caller may do, in three words.

use std::fmt;

/// A part of what the service does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Routes and gates, and sees of the catalog what its own agent sees.
    Agent,
    /// Reads and changes its tenant's catalog and policy, and reads its usage and memory.
    CatalogWriter,
    /// Everything; of any tenant that a call names, where the credential is of none.
    Admin,
}

/// A set of roles.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Roles(u8);

impl Role {
    /// All roles, least first.
    pub const ALL: [Self; 3] = [Self::Agent, Self::CatalogWriter, Self::Admin];

    /// The names, in the same order.
    pub const NAMES: [&'static str; 3] = ["agent", "catalog-writer", "admin"];

    /// The name, as in credentials.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// The role of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }
}

impl Roles {
    /// These roles and no others.
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

    /// Those of these names that there are; others say nothing to this service.
    #[must_use]
    pub fn named<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self::of(&names.into_iter().filter_map(Role::named).collect::<Vec<_>>())
    }

    /// Whether the role is among them.
    #[must_use]
    pub const fn has(self, role: Role) -> bool {
        self.0 & (1 << role as u8) != 0
    }

    /// These roles and that one.
    #[must_use]
    pub const fn and(self, role: Role) -> Self {
        Self(self.0 | 1 << role as u8)
    }

    /// Whether any role is in both.
    #[must_use]
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The names, least role first.
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
