import { isPrivilegeLacking, sqlState } from '../../store/connection/sql-errors.ts';

/** Returns what is read, or `otherwise` if this role lacks a privilege for it, which the line about rights names. */
export async function ifAllowed<T, Otherwise>(
  reading: Promise<T>,
  otherwise: Otherwise,
): Promise<T | Otherwise> {
  try {
    return await reading;
  } catch (error) {
    if (isPrivilegeLacking(sqlState(error))) return otherwise;
    throw error;
  }
}
