import { Column, Entity, PrimaryGeneratedColumn } from 'typeorm';

/** Not unique by order: an event that is applied twice would be seen as two shipments. */
@Entity('shipment')
export class Shipment {
  @PrimaryGeneratedColumn('uuid')
  id!: string;

  @Column('uuid')
  orderId!: string;

  @Column('text')
  sku!: string;
}
