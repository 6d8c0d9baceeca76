/// Several files that are to be made in one folder.
public enum FreeNames {
    /// Each under a name that is free there, and that none of the others has. Blocking.
    public static func paths(of names: [[UInt8]], in folder: [UInt8]) -> [[UInt8]] {
        var taken: Set<[UInt8]> = []
        return names.map { name in
            var path = folder + [0x2F] + name
            var number = 2
            while taken.contains(path) || FileWork.exists(path) {
                path = folder + [0x2F] + FileWork.numbered(name, number)
                number += 1
            }
            taken.insert(path)
            return path
        }
    }
}
